/** The errors, with the names that they have in Python. Everything thrown on purpose is a {@link SunziError}. */

/** Base of every error that Sunzi throws on purpose. */
export class SunziError extends Error {
  override name = "SunziError";
}

/** An argument is outside what the function accepts. */
export class ParameterError extends SunziError {
  override name = "ParameterError";
}

/** A value is not in the domain, or a label file does not belong to it. */
export class DomainError extends ParameterError {
  override name = "DomainError";
}

/** A plan is malformed, or fails one of the checks that a client makes for itself. */
export class PlanError extends SunziError {
  override name = "PlanError";
}

/** A plan's integers do not give the privacy that it claims, or this client does not accept its terms. */
export class PrivacyError extends PlanError {
  override name = "PrivacyError";
}

/** Bytes are not a report, or a batch of reports, of this plan; or a collector refused them for good. */
export class ReportError extends SunziError {
  override name = "ReportError";
}

/** A report would spend more of an attribute's lifetime ε than is left. Nothing was spent and nothing made. */
export class BudgetError extends SunziError {
  override name = "BudgetError";
}

/** There is no randomness, or not enough. Nothing was reported. */
export class RandomnessError extends SunziError {
  override name = "RandomnessError";
}

/** A store or a collector cannot be reached or used now. The same may be tried again later. */
export class StoreError extends SunziError {
  override name = "StoreError";
}

/** A plan needs a part of this library that was not given to the client: import it and pass it in `designs`. */
export class MissingExtraError extends SunziError {
  override name = "MissingExtraError";
}

/** Throw unless the condition holds. */
export function check(
  condition: unknown,
  message: string,
  kind: new (message: string) => SunziError = PlanError,
): asserts condition {
  if (!condition) throw new kind(message);
}
