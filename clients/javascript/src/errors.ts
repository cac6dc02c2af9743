/**
 * The errors have the same names as in Python. All derive from {@link SunziError}. Their names are written out, because
 * minifiers rename classes.
 */

/** Base class of all errors that Sunzi throws. */
export class SunziError extends Error {
  static override readonly name: string = "SunziError";

  /** The name of its class, also in `stack`, which is made before any field is set. */
  override get name(): string {
    return this.constructor.name;
  }

  /** Long messages are cut, because they may quote a plan or a response from the network. */
  constructor(message: string, options?: { cause?: unknown }) {
    super(message.slice(0, 500), options);
  }
}

/** An argument is invalid. */
export class ParameterError extends SunziError {
  static override readonly name: string = "ParameterError";
}

/** A value is outside the domain, or a label file does not match it. */
export class DomainError extends ParameterError {
  static override readonly name: string = "DomainError";
}

/** A plan is malformed or fails one of the client's checks. */
export class PlanError extends SunziError {
  static override readonly name: string = "PlanError";
}

/** A plan does not provide the ε it states, or exceeds the limits that this client accepts. */
export class PrivacyError extends PlanError {
  static override readonly name: string = "PrivacyError";
}

/** Bytes are not a report or batch of this plan, or a collector rejected them for good. */
export class ReportError extends SunziError {
  static override readonly name: string = "ReportError";
}

/** The lifetime ε of an attribute is too small for even one report. Nothing was spent and no report was made. */
export class BudgetError extends SunziError {
  static override readonly name: string = "BudgetError";
}

/** Randomness is missing or insufficient. Nothing was reported. */
export class RandomnessError extends SunziError {
  static override readonly name: string = "RandomnessError";
}

/** A store or collector cannot be reached or used now. Try again later. */
export class StoreError extends SunziError {
  static override readonly name: string = "StoreError";
}

/** A plan needs an optional part of this library: import it and pass it as an option. */
export class MissingExtraError extends SunziError {
  static override readonly name: string = "MissingExtraError";
}

/** A class of errors. */
export type ErrorKind = new (message: string, options?: { cause?: unknown }) => SunziError;

/** A value of a plan, short enough for a message. */
export function shown(value: unknown): string {
  // JSON has no NaN and no Infinity, and fails for some other values.
  let text = String(value);
  if (typeof value === "string" || (typeof value === "object" && value)) {
    try {
      text = JSON.stringify(value) ?? text;
    } catch {} // a cycle, or an integer without a limit
  }
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Throw unless the condition holds. */
export function check(condition: unknown, message: string, kind: ErrorKind = PlanError): asserts condition {
  if (!condition) throw new kind(message);
}
