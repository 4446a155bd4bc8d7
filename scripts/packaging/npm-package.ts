import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { platforms } from '../../shared/releases/manifest.ts'
import { modes, tarGz, type Entry } from './archive.ts'
import { libOf, pages, programs, type Programs } from './contents.ts'

const root = join(import.meta.dirname, '../..')

/**
 * The package for npm: for all platforms, with all that it loads inside, so that npm fetches nothing and starts no script. The libraries lie
 * in `lib/node_modules`, which npm takes for files like others.
 */
export async function npmPackageOf(all: Programs): Promise<{ name: string; bytes: Buffer }> {
  const { version } = all.source
  const files: Entry[] = [
    ...(await libOf(all, { kind: 'npm', platforms })),
    ...pages(),
    { path: 'package.json', mode: modes.file, bytes: Buffer.from(manifestOf(version)) },
  ]
  const started = new Set(Object.values(programs).map((part) => `lib/${part}/main.js`))
  const entries = files.map((entry) => ({
    ...entry,
    path: `package/${entry.path}`,
    ...(started.has(entry.path) ? { mode: modes.program } : {}),
  }))
  return { name: `svc-${version}.tgz`, bytes: await tarGz(entries, all.source) }
}

function manifestOf(version: string): string {
  const { name, description, license, engines } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as Record<string, unknown>
  const bin = Object.fromEntries(Object.entries(programs).map(([program, part]) => [program, `lib/${part}/main.js`]))
  const os = [...new Set(platforms.map((platform) => platform.split('-')[0]))]
  const cpu = [...new Set(platforms.map((platform) => platform.split('-')[1]))]
  const manifest = { name, version, description, license, engines, type: 'commonjs', bin, os, cpu }
  return `${JSON.stringify(manifest, null, 2)}\n`
}
