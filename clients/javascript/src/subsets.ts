/** The subset designs of `ss` and `mss`, apart because few pages need them: `new Client(plan, { designs: [subsets] })`. */

export { subsets } from "./designs/subsets.js";
