import type { KeyObject } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import type { PackageKind } from '../../scripts/packaging/release.ts'
import { Box, boxTrouble, type BoxKind } from './box.ts'
import { releaseFor } from './releases.ts'

interface BoxedReleases {
  /** Why no box can be made here, which was said; null: one is there when the tests begin. */
  trouble: string | null
  readonly box: Box
  /** A folder for what the tests make, with the releases in it. */
  readonly folder: string
  /** The file of a version whose name ends so. */
  file(version: string, end: string): string
  /** Gives the box that file, and returns where it is there. */
  give(version: string, end: string): string
  /** A machine for the test that runs, which has seen nothing. */
  newBox(kind?: BoxKind): Promise<Box>
}

/**
 * A box for the tests of a file, unless each makes its own, and releases for it. `about`: what nobody has tried where no box can be made;
 * `versions`: with the forms that each is made in; `key` signs the releases; `boxes`: kinds of those that tests make.
 */
export function useBoxedReleases(
  about: string,
  {
    versions,
    key = null,
    boxes = [],
  }: {
    versions: Readonly<Record<string, readonly PackageKind[]>>
    key?: KeyObject | null
    boxes?: readonly BoxKind[]
  },
): BoxedReleases {
  const trouble = boxTrouble(boxes.length === 0 ? ['base'] : boxes)
  if (trouble !== null) process.stderr.write(`NOT RUN: ${trouble}, so ${about}\n`)
  let folder = ''
  let box: Box | null = null
  beforeAll(async () => {
    if (trouble !== null) return
    folder = mkdtempSync(join(tmpdir(), 'svc-boxed-'))
    for (const [version, kinds] of Object.entries(versions))
      await releaseFor(folder, { version, key, kinds, withNode: true })
    if (boxes.length === 0) box = await Box.make()
  }, 900_000)
  afterAll(async () => {
    await box?.remove()
    if (folder !== '') rmSync(folder, { recursive: true, force: true })
  }, 120_000)
  const file = (version: string, end: string) => {
    const made = join(folder, version)
    return join(
      made,
      readdirSync(made).find((name) => name.endsWith(end))!,
    )
  }
  return {
    trouble,
    get box() {
      return box!
    },
    get folder() {
      return folder
    },
    file,
    give: (version, end) => box!.give(file(version, end)),
    async newBox(kind) {
      const made = await Box.make(kind)
      onTestFinished(() => made.remove(), 120_000)
      return made
    },
  }
}
