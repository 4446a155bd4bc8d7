import { execFileSync } from 'node:child_process'
import { createPublicKey, sign, type KeyObject } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  manifestNames,
  type Platform,
  type ReleasedFile,
  type ReleaseManifest,
} from '../../shared/releases/manifest.ts'
import { sha256 } from './archive.ts'
import { bundlePrograms, type Programs, type Source } from './contents.ts'
import { debianNames, debianPackageOf, type DebianPlatform } from './debian.ts'
import { formulaOf } from './formula.ts'
import { npmPackageOf } from './npm-package.ts'
import { sbomOf } from './sbom.ts'
import { nodeFor, tarballOf, type NodeFiles } from './tarball.ts'

export const packageKinds = ['tarball', 'npm', 'deb'] as const
export type PackageKind = (typeof packageKinds)[number]

export interface ReleaseOptions {
  /** The folder for the files, which is made anew. */
  out: string
  version: string
  platforms: readonly Platform[]
  kinds: readonly PackageKind[]
  /** The private key (Ed25519) that signs the manifest; null: it is not signed, and `svc upgrade` refuses it. */
  key: KeyObject | null
  /** Archives of Node by platform, where npm's package is not to be taken. */
  nodes: ReadonlyMap<string, string>
  /** The address at which the files will lie. */
  from: string
  /** How hard files are packed, 1 to 9. */
  level: number
  /** Told of each file, and of what was not built. */
  say: (line: string) => void
}

const root = join(import.meta.dirname, '../..')
/** With Node, as an unpacked copy is downloaded. */
const mostBytes = 60 * 1024 ** 2

interface Built {
  name: string
  bytes: Buffer
  kind: ReleasedFile['kind']
  platform: Platform | null
}

/** Builds the packages of a release into a folder, with the signed manifest of them. The same commit gives the same bytes. */
export async function makeRelease(options: ReleaseOptions): Promise<void> {
  const { out, platforms, kinds, nodes, say } = options
  const source = sourceOf(options)
  const programs = await bundlePrograms(source)
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const files: ReleasedFile[] = []
  const write = ({ name, bytes, kind, platform }: Built) => {
    writeFileSync(join(out, name), bytes)
    files.push({ name, kind, platform, bytes: bytes.length, sha256: sha256(bytes) })
    say(`${name}  ${(bytes.length / 1024 ** 2).toFixed(1)} MiB`)
    if (bytes.length > mostBytes) throw new Error(`${name} has more than ${mostBytes / 1024 ** 2} MiB.`)
  }
  if (kinds.includes('npm')) write({ ...(await npmPackageOf(programs)), kind: 'npm', platform: null })
  for (const platform of kinds.some((kind) => kind !== 'npm') ? platforms : []) {
    const node = await nodeFor(platform, nodes.get(platform))
    for (const built of await withNode(programs, { platform, node, kinds })) write(built)
  }
  write({ ...sbomOf(source), kind: 'sbom', platform: null })
  if (files.some(({ kind }) => kind === 'tarball'))
    write({ ...formulaOf(source, { files, from: options.from }), kind: 'formula', platform: null })
  writeManifest(source, files, options)
}

async function withNode(
  programs: Programs,
  { platform, node, kinds }: { platform: Platform; node: NodeFiles; kinds: readonly PackageKind[] },
): Promise<Built[]> {
  const built: Built[] = []
  if (kinds.includes('tarball'))
    built.push({ ...(await tarballOf(programs, platform, node)), kind: 'tarball', platform })
  if (kinds.includes('deb') && isDebian(platform))
    built.push({ ...(await debianPackageOf(programs, platform, node)), kind: 'deb', platform })
  return built
}

const isDebian = (platform: Platform): platform is DebianPlatform => platform in debianNames

function sourceOf({ version, key, level, say }: ReleaseOptions): Source {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  if (git('status', '--porcelain') !== '')
    say('The checkout differs from its commit, so these packages are not those of the commit.')
  return {
    version,
    commit: git('rev-parse', 'HEAD'),
    at: new Date(Number(git('log', '-1', '--format=%ct')) * 1_000),
    publicKey: key === null ? null : String(createPublicKey(key).export({ type: 'spki', format: 'pem' })),
    level,
  }
}

function writeManifest(source: Source, files: ReleasedFile[], { out, key, say }: ReleaseOptions): void {
  const { version, commit, at } = source
  const manifest: ReleaseManifest = { product: 'svc', version, commit, madeAt: at.toISOString(), files }
  const bytes = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
  writeFileSync(join(out, manifestNames.manifest), bytes)
  writeFileSync(join(out, 'SHA256SUMS'), files.map(({ name, sha256: hash }) => `${hash}  ${name}\n`).join(''))
  if (key === null) say('Not signed: `svc upgrade` refuses it. Sign with --sign KEY (docs/install.md).')
  else writeFileSync(join(out, manifestNames.signature), `${sign(null, bytes, key).toString('base64')}\n`)
}
