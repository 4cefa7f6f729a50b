"""The kinds of real files that are made here."""

from tests.support.real_data.chats import CHATS
from tests.support.real_data.cloudtrail import CLOUDTRAIL
from tests.support.real_data.elasticsearch import ELASTICSEARCH
from tests.support.real_data.flows import VPC_FLOWS
from tests.support.real_data.geojson import GEOJSON
from tests.support.real_data.github import GITHUB
from tests.support.real_data.kind import Kind
from tests.support.real_data.kubernetes import KUBERNETES
from tests.support.real_data.mongo import MONGO
from tests.support.real_data.nginx import NGINX
from tests.support.real_data.telemetry import DEVICE_READINGS
from tests.support.real_data.tweets import TWEETS

KINDS: tuple[Kind, ...] = (
    GITHUB,
    CLOUDTRAIL,
    KUBERNETES,
    VPC_FLOWS,
    NGINX,
    ELASTICSEARCH,
    TWEETS,
    DEVICE_READINGS,
    GEOJSON,
    CHATS,
    MONGO,
)
