// What the page knows, and several of its modules read. Nothing else that changes is shared.

const TOKEN_KEY = "sunzi-admin-token";

const nothingYet = () => ({
  epochs: [],
  listedAt: -Infinity,
  chosen: null, // { collection, epoch }
  status: null, // of the chosen epoch
  offer: null, // the plan that clients of the chosen collection are told
});

export const state = { token: sessionStorage.getItem(TOKEN_KEY) ?? "", ...nothingYet() };

/** Keep the token until the tab closes; the empty one is none. */
export function keepToken(token) {
  state.token = token;
  if (token) sessionStorage.setItem(TOKEN_KEY, token);
  else sessionStorage.removeItem(TOKEN_KEY);
}

/** Know nothing of any collection any more. */
export function forgetEpochs() {
  Object.assign(state, nothingYet());
}
