"""The only door to object stores and local disks."""
