import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyFile, copyKeyFile, type CopyKind } from '../../shared/releases/copy.ts'
import type { Platform } from '../../shared/releases/manifest.ts'
import { build } from '../build.ts'
import { copyPackages } from '../release.ts'
import { modes, type Entry } from './archive.ts'
import { filesOfPinned } from './npm-parts.ts'

/** What a release is made from. */
export interface Source {
  version: string
  commit: string
  /** The time of the commit: that of all files in it. */
  at: Date
  /** The public key that later releases must be signed by (PEM); null: this one is not signed. */
  publicKey: string | null
  /** How hard files are packed, 1 to 9. */
  level: number
}

/** The programs as all packages have them, but for natives and what says how they were installed. */
export interface Programs {
  entries: readonly Entry[]
  source: Source
}

const root = join(import.meta.dirname, '../..')

/** Natives of all platforms; each package gets its own. */
const native = /^node_modules\/(?:@lydell\/node-pty-[^/]+|better-sqlite3\/prebuilds)\//
/** Licences stay with what they are of. */
const isLicence = (name: string): boolean => /(?:^|\/)(?:licen[cs]e|copying|notice)[^/]*$/i.test(name)
/** Nobody reads these where the programs run. */
const unread =
  /\.(?:md|markdown|map|d\.ts|d\.cts|d\.mts|ts|h|gyp|gypi|yml|c|cc|cpp)$|\/(?:test|tests|benchmarks?|example|examples|docs|\.github)\//i

const isNeedless = (name: string) => unread.test(name) && !isLicence(name)

/** Bundles the programs; `version` is what they say of themselves. */
export async function bundlePrograms(source: Source): Promise<Programs> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-release-'))
  try {
    await build(folder, source.version)
    copyPackages(folder)
    const names = globSync('**/*', { cwd: folder, exclude: (name) => name === '.bin' })
    const files = names.filter((name) => statSync(join(folder, name)).isFile())
    const kept = files.filter((name) => !native.test(name) && !(name.startsWith('node_modules/') && isNeedless(name)))
    return { entries: kept.map((name) => fileEntry(name, readFileSync(join(folder, name)))), source }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const fileEntry = (path: string, bytes: Buffer): Entry => ({ path, mode: modes.file, bytes })

/** The folder `lib` of a package: the programs, the natives of its platforms, and what says how they were installed. */
export async function libOf(
  { entries, source }: Programs,
  { kind, platforms }: { kind: CopyKind; platforms: readonly Platform[] },
): Promise<Entry[]> {
  const natives = await Promise.all(platforms.map(nativesOf))
  const { version, commit, publicKey } = source
  const copy = fileEntry(copyFile, Buffer.from(`${JSON.stringify({ kind, version, commit })}\n`))
  const key = publicKey === null ? [] : [fileEntry(copyKeyFile, Buffer.from(publicKey))]
  return [...entries, ...natives.flat(), copy, ...key].map((entry) => ({ ...entry, path: `lib/${entry.path}` }))
}

async function nativesOf(platform: Platform): Promise<Entry[]> {
  const sqlite = `node_modules/better-sqlite3/prebuilds/${platform}.node`
  const pty = `@lydell/node-pty-${platform}`
  const files = await filesOfPinned('package-lock.json', pty)
  const ofPty = [...files]
    .filter(([name]) => !isNeedless(name))
    .map(([name, bytes]): Entry => {
      const mode = name.endsWith('spawn-helper') ? modes.program : modes.file
      return { path: `node_modules/${pty}/${name}`, mode, bytes }
    })
  return [fileEntry(sqlite, readFileSync(join(root, sqlite))), ...ofPty]
}

/** Pages for whoever unpacks it. */
export const pages = (): Entry[] =>
  ['LICENSE', 'README.md', 'CHANGELOG.md'].map((name) => fileEntry(name, readFileSync(join(root, name))))

/** The names of the programs, and the bundles that they are. */
export const programs = { svc: 'cli', 'svc-device': 'device-manager', 'svc-server': 'control-plane' } as const
