"""Measurements that are kept: what a part costs as its history grows."""
