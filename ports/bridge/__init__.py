"""The bridge: carries messages from one broker to another, loses none, and says how it is (core/DESIGN.md, the bridge).

from leveret.ports.bridge.bridge import Bridge
from leveret.ports.bridge.settings import Settings
"""
