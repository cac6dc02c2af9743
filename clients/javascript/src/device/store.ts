/**
 * Where a device keeps its key and the accounts of its attributes.
 *
 * {@link Store.update} is atomic and durable: with concurrent tabs or processes and across crashes, an account is the
 * one before or the one after. So a report is both debited and queued or neither.
 */

import type { DeviceKey } from "../platform.js";
import type { Account } from "./account.js";

/** A device that is on. Its id is random and not used outside the store. */
export interface Identity {
  readonly id: string;
  readonly key: DeviceKey;
}

/** The interface of stores. Nothing is created before {@link enable}. */
export interface Store {
  /** Draw an identity, without storing it. */
  draw(): Promise<Identity>;
  /** The stored identity; undefined while the device is off. */
  identity(): Promise<Identity | undefined>;
  /** Store this identity unless there is one. */
  enable(drawn: Identity): Promise<void>;
  /** Delete the identity, then replace every account by {@link withoutReports} of it. */
  disable(): Promise<void>;
  /** All accounts. */
  accounts(): Promise<Account[]>;
  /**
   * Replace the account of an attribute, by default {@link newAccount}, with what `change` returns for it and the id of
   * the device that is on at that moment; not if it returns undefined or throws. It may be called more than once, and
   * never if nothing was ever stored.
   */
  update(attribute: string, change: Change): Promise<void>;
}

/** Makes a new account from the present one and the id of the device, which is undefined while that is off. */
export type Change = (account: Account, device: string | undefined) => Account | undefined;
