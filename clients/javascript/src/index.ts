/** Local differential privacy on a device: check a plan, randomise a value, send a report that is counted once. */

export { Client, type ClientOptions } from "./client.js";
export type { DesignReader } from "./designs/design.js";
export type { Attribute, Domain, PlanReader, Range, SingleValue, Value } from "./domain.js";
export type { Epsilon } from "./epsilon.js";
export {
  BudgetError,
  DomainError,
  MissingExtraError,
  ParameterError,
  PlanError,
  PrivacyError,
  RandomnessError,
  ReportError,
  StoreError,
  SunziError,
} from "./errors.js";
export type { DeclaredGroups, Groups } from "./groups.js";
export { Plan, type PlanOptions, type PlanSource } from "./plan.js";
export type { Bytes, Signal } from "./platform.js";
export type { Index } from "./protocols/protocol.js";
export type { WordSource } from "./randomness.js";
export { type Epoch, fetchEpoch, type Outcome, type RequestOptions, type SendOptions } from "./uploading.js";
