/** Repeated reports: consent, memoised noise, a lifetime budget, and uploads that survive crashes. */

export {
  type Account,
  type Debit,
  newAccount,
  type QueuedReport,
  withoutReports,
} from "./device/account.js";
export { BrowserStore } from "./device/browser_store.js";
export type { QueueOutcome, WhenSpent } from "./device/deciding.js";
export { Device, type DeviceOptions, type Preview, type QueueOptions, type QueueResult } from "./device/device.js";
export { importDeviceKey, makeDeviceKey, MemoisingClient } from "./device/memoising.js";
export { MemoryStore } from "./device/memory_store.js";
export { notice } from "./device/notice.js";
export type { FlushResult } from "./device/outbox.js";
export type { Change, Identity, Store } from "./device/store.js";
export type { DeviceKey } from "./platform.js";
