/** The subset designs of `ss` and `mss`, which few pages need: `new Client(plan, { designs: [subsets] })`. */

export { subsets } from "./designs/subsets.js";
