import path from 'node:path'
import type { DeviceActs } from './device-acts.ts'
import type { Entered, Entering, HolderPlan } from './namespaces.ts'
import { shells } from './namespaces.ts'
import type { WallSpec } from './spec.ts'

/**
 * The wall on macOS: a profile for sandbox-exec, which the program and all that it starts inherit. svc's folders cannot be
 * read or written, and other processes cannot be signalled or looked into. There are no namespaces, so processes can still
 * be listed and what leaves its session lives on: the level is `partial`. `own`: names within the state folder of folders that the run
 * may write to.
 */
export function sandboxProfile(
  plan: Omit<HolderPlan, 'isRoot' | 'cgroups' | 'readOnlyInside'>,
  own: readonly string[],
): string {
  const { stateDir, shown, folders, files, pinned, readOnly } = plan
  const inState = (name: string) => text(path.posix.join(stateDir, name))
  return [
    '(version 1)',
    '(allow default)',
    ...readOnly.map((file) => `(deny file-write* (subpath ${text(file)}))`),
    ...[stateDir, ...folders].map((folder) => `(deny file* network* (subpath ${text(folder)}))`),
    ...files.map((file) => `(deny file* network* (literal ${text(file)}))`),
    // Also what a rename needs.
    ...pinned.map((folder) => `(deny file-write-unlink (literal ${text(folder)}))`),
    ...shown.map((name) => `(allow file-read* (subpath ${inState(name)}))`),
    ...own.map((name) => `(allow file* (subpath ${inState(name)}))`),
    // To reach what is shown, the folders above it are looked at, but not listed.
    `(allow file-read-metadata (literal ${text(stateDir)}) (literal ${inState('own')}))`,
    '(deny signal)',
    '(allow signal (target same-sandbox))',
    '(deny process-info*)',
    '(allow process-info* (target same-sandbox))',
    '(allow process-exec* process-fork)',
  ].join('\n')
}

export function sandboxCommand(
  { programs }: Pick<WallSpec, 'programs'>,
  { profile, acts }: { profile: string; acts: DeviceActs | null },
  entering: Entering,
): Entered {
  const { before, after, env } = shells(entering, acts)
  return { file: '/bin/sh', args: [...before, programs['sandbox-exec']!, '-p', profile, ...after], env }
}

/** A string of the profile's language. */
function text(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
