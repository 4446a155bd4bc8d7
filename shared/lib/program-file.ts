/** The parts whose `main` is started as a program of its own; `control-plane/costly` as a thread. */
export type Program = 'cli' | 'control-plane' | 'control-plane/costly' | 'device-manager' | 'device-manager/run-host'

const here = import.meta.url
const isSource = here.endsWith('.ts')
// Bundled, this module lies in a chunk of its own in `chunks/` (scripts/build.ts).
const root = new URL(isSource ? '../../' : '../', here)

/** Where the program's `main` lies, as a `file:` address: in a checkout its source, in a build what was bundled of it. */
export function programUrl(program: Program): URL {
  return new URL(`${program}/main.${isSource ? 'ts' : 'js'}`, root)
}
