/** Whether somebody has said no for all applications: this always wins over a stored consent. */

/**
 * Whether `DO_NOT_TRACK` is set in the environment (to anything but nothing, 0 and false), or the browser sends Global
 * Privacy Control or Do Not Track.
 */
export function isForbidden(): boolean {
  const { process, navigator, doNotTrack } = globalThis as {
    process?: { env?: Record<string, string | undefined> };
    navigator?: { globalPrivacyControl?: unknown; doNotTrack?: unknown };
    doNotTrack?: unknown;
  };
  const setting = process?.env?.DO_NOT_TRACK?.trim() ?? "";
  if (!/^(|0|false)$/i.test(setting) || navigator?.globalPrivacyControl === true) return true;
  return [navigator?.doNotTrack, doNotTrack].some((each) => each === "1" || each === "yes");
}
