import { setFlagsFromString } from 'node:v8'

/**
 * The compilers of V8 beside its interpreter take 9 MB of memory with the first function that they are used on, and a
 * daemon's start is enough for that. So they are off until there is work; all that ran before is compiled by them then,
 * as it would have been. (A flag is looked at when a function has run often; nothing else hangs on it.)
 */
const compilers = ['opt', 'maglev', 'sparkplug']

export function compileForMemory(): void {
  for (const name of compilers) setFlagsFromString(`--no-${name}`)
}

export function compileForSpeed(): void {
  for (const name of compilers) setFlagsFromString(`--${name}`)
}
