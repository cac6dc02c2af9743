/** Domains of records, whose attributes have domains of their own (`docs/format.md`, 2.3). */

import { type Attribute, Domain, type ReadDomain } from "../domain.js";
import { check, DomainError, shown } from "../errors.js";
import type { JsonObject } from "../json.js";
import { checkText, fields, integer, list } from "../plan_fields.js";
import { readRange } from "./range.js";

const MAX_ATTRIBUTES = 64;
const MAX_BINS = 2 ** 30;

/** The domain of a single number or date. */
function readBins(record: JsonObject): ReadDomain {
  fields(record, "range size");
  return { properties: record, indexOf: readRange(record.range, integer(record, "size", 2, MAX_BINS)) };
}

/** The index of a record: the mixed-radix number of its attributes' indices, the last one running fastest. */
function indexOfRecord(attributes: readonly Attribute[], value: unknown): number {
  // Not an array, a Date or a Map, whose entries would be misread.
  const isRecord = Object.prototype.toString.call(value) === "[object Object]";
  if (!isRecord) throw new DomainError(`a record must be an object, got ${shown(value)}`);
  const record = value as { readonly [name: string]: unknown };
  let [index, found] = [0, 0];
  for (const { name, domain } of attributes) {
    const isGiven = Object.prototype.propertyIsEnumerable.call(record, name);
    found += Number(isGiven);
    try {
      index = index * domain.size + (domain.index(isGiven ? record[name] : undefined) as number);
    } catch (error) {
      throw new DomainError(`attribute ${shown(name)}: ${(error as Error).message}`);
    }
  }
  const names = Object.keys(record);
  if (names.length !== found) {
    const known = attributes.map(({ name }) => name);
    const unknown = names.find((name) => !known.includes(name));
    throw new DomainError(`there is no attribute ${shown(unknown)}; the attributes are ${known.join(", ")}`);
  }
  return index;
}

/** Check a domain of records, or of a single number. */
export function readRecordDomain(record: JsonObject): ReadDomain {
  if (!Object.hasOwn(record, "attributes")) return readBins(record);
  fields(record, "attributes size");
  const attributes = list(record, "attributes").map((each) => {
    const { name, domain: value } = fields(each, "domain name");
    const isSingle = !["attributes", "symbols"].some((key) => Object.hasOwn(Object(value), key));
    check(isSingle, "an attribute must have single values from a list or a range");
    const domain = new Domain(value, { records: { readDomain: readBins } });
    check(!domain.labels_sha256, "an attribute's labels must be in the plan");
    return { name: checkText(name, "name"), domain };
  });
  const { length } = attributes;
  check(length >= 1 && length <= MAX_ATTRIBUTES, `expected 1 to ${MAX_ATTRIBUTES} attributes, got ${length}`);
  check(new Set(attributes.map(({ name }) => name)).size === length, "an attribute is repeated");
  // A product above 2^53 may be rounded, but never to less.
  const size = attributes.reduce((product, { domain }) => product * domain.size, 1);
  check(size < 2 ** 53, "the attributes must have fewer than 2^53 combinations");
  integer(record, "size", size, size);
  return { properties: { size, attributes }, indexOf: (value) => indexOfRecord(attributes, value) };
}
