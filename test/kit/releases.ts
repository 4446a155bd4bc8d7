import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { modes, tarGz } from '../../scripts/packaging/archive.ts'
import { makeRelease, type PackageKind } from '../../scripts/packaging/release.ts'
import type { Platform } from '../../shared/releases/manifest.ts'

// Releases of this checkout for tests: of this platform, packed quickly, signed by a key of the test.

/**
 * A Node to be packed that starts the one of this test: the real one has 126 MB, which each installation unpacks, writes and flushes. What a
 * copy does by its own Node is shown where a release is made `withNode`.
 */
async function smallNode(folder: string): Promise<string> {
  const starter = Buffer.from(`#!/bin/sh\nexec '${process.execPath}' "$@"\n`)
  const entries = [
    { path: 'node/bin/node', mode: modes.program, bytes: starter },
    { path: 'node/LICENSE', mode: modes.file, bytes: Buffer.from('none') },
  ]
  const file = join(folder, 'small-node.tar.gz')
  writeFileSync(file, await tarGz(entries, { at: new Date(0), level: 1 }))
  return file
}

export const here = `${process.platform}-${process.arch}` as Platform

export const signingKey = (): KeyObject => generateKeyPairSync('ed25519').privateKey

export interface MadeRelease {
  version: string
  folder: string
  tarball: string
}

/** Makes a release into a folder of the version's name. */
export async function releaseFor(
  folder: string,
  {
    version,
    key,
    kinds = ['tarball'],
    withNode = false,
  }: { version: string; key: KeyObject | null; kinds?: readonly PackageKind[]; withNode?: boolean },
): Promise<MadeRelease> {
  const out = join(folder, version)
  await makeRelease({
    out,
    version,
    key,
    kinds,
    platforms: [here],
    nodes: withNode ? new Map() : new Map([[here, await smallNode(folder)]]),
    from: 'http://localhost/svc',
    level: 1,
    say: () => undefined,
  })
  return { version, folder: out, tarball: join(out, `svc-${version}-${here}.tar.gz`) }
}
