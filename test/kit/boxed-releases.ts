import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import type { PackageKind } from '../../scripts/packaging/release.ts'
import { Box, boxTrouble } from './box.ts'
import { releaseFor } from './releases.ts'

interface BoxedReleases {
  /** Why no box can be made here, which was said; null: one is there when the tests begin. */
  trouble: string | null
  readonly box: Box
  /** A folder for what the tests make, with the releases in it. */
  readonly folder: string
  /** Gives the box the file of a version whose name ends so, and returns where it is there. */
  give(version: string, end: string): string
}

/** A box for the tests of a file, and releases for it. `about`: what nobody has tried where no box can be made. */
export function useBoxedReleases(
  about: string,
  { versions, kinds }: { versions: readonly string[]; kinds: readonly PackageKind[] },
): BoxedReleases {
  const trouble = boxTrouble()
  if (trouble !== null) process.stderr.write(`NOT RUN: ${trouble}, so ${about}\n`)
  let folder = ''
  let box: Box | null = null
  beforeAll(async () => {
    if (trouble !== null) return
    folder = mkdtempSync(join(tmpdir(), 'svc-boxed-'))
    for (const version of versions) await releaseFor(folder, { version, key: null, kinds, withNode: true })
    box = await Box.make()
  }, 900_000)
  afterAll(async () => {
    await box?.remove()
    if (folder !== '') rmSync(folder, { recursive: true, force: true })
  }, 120_000)
  return {
    trouble,
    get box() {
      return box!
    },
    get folder() {
      return folder
    },
    give(version, end) {
      const made = join(folder, version)
      return box!.give(
        join(
          made,
          readdirSync(made).find((name) => name.endsWith(end))!,
        ),
      )
    },
  }
}
