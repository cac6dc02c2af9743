from sunzi.device.device import Device as Device
from sunzi.device.device import QueuedReport as QueuedReport
from sunzi.device.device import Sender as Sender
from sunzi.device.memoising import MemoisingClient as MemoisingClient
