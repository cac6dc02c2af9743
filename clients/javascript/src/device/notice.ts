/** What a user should read before a device is turned on. */

import { parseEpsilon } from "../epsilon.js";
import { check, ParameterError } from "../errors.js";
import { Plan, type PlanOptions, type PlanSource } from "../plan.js";

/** What ε means: how much more likely a report can be with one value than with another, such as "2.72 times (ε = 1)". */
export function likelihood(epsilon: string): string {
  const { numerator, denominator } = parseEpsilon(epsilon);
  const factor = Math.exp(Number(numerator) / Number(denominator));
  return `${Number(factor.toPrecision(3))} times (ε = ${epsilon})`;
}

/**
 * A text for a notice at the first start: what is collected, how it is protected, and how to turn it off.
 *
 * @param lifetimeEpsilon the ε that all reports of this attribute may spend together
 */
export function notice(
  plan: Plan | PlanSource,
  attribute: string,
  options: PlanOptions = {},
  lifetimeEpsilon?: string,
): string {
  check(attribute, "attribute must not be empty", ParameterError);
  const { epsilon } = plan instanceof Plan ? plan : new Plan(plan, options);
  const together = lifetimeEpsilon ? `, and all of them together at most ${likelihood(lifetimeEpsilon)}` : "";
  return (
    `This application would like to send reports about “${attribute}”. Every report is randomised on this device before ` +
    `it is sent: your value makes it at most ${likelihood(epsilon)} as likely as any other value would${together}. ` +
    "This is off until you agree. You can turn it off again in this application, or for all applications with " +
    "DO_NOT_TRACK=1 in the environment or Global Privacy Control in the browser."
  );
}
