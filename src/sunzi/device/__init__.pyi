from sunzi.device.device import Device as Device
from sunzi.device.device import QueuedReport as QueuedReport
from sunzi.device.memoising import MemoisingClient as MemoisingClient
from sunzi.device.sending import Sender as Sender
