import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { filesOfTarGz } from './archive.ts'

// Packages for other machines, which `npm ci` does not install here: fetched by name, and taken only with the hash that a lockfile of this
// project tells.

const root = join(import.meta.dirname, '../..')
const cache = join(root, '.cache/packaging')

/** Returns the files of a package as the lockfile (a path in the checkout) pins it; fails where it names none of that name. */
export async function filesOfPinned(lockfile: string, name: string): Promise<Map<string, Buffer>> {
  const { packages } = JSON.parse(readFileSync(join(root, lockfile), 'utf8')) as Lockfile
  const pinned = packages[`node_modules/${name}`]
  if (pinned === undefined) throw new Error(`${lockfile} does not name ${name}.`)
  const kept = join(cache, `${pinned.integrity.replaceAll(/[^A-Za-z0-9]/g, '_').slice(0, 60)}.tgz`)
  if (!existsSync(kept)) fetchInto(kept, `${name}@${pinned.version}`)
  const packed = readFileSync(kept)
  const [algorithm = '', hash] = pinned.integrity.split(/-(.*)/s)
  if (createHash(algorithm).update(packed).digest('base64') !== hash) {
    rmSync(kept)
    throw new Error(`The package ${name}@${pinned.version} that npm fetched does not have the hash of ${lockfile}.`)
  }
  return filesOfTarGz(packed)
}

interface Lockfile {
  packages: Record<string, { version: string; integrity: string }>
}

function fetchInto(kept: string, spec: string): void {
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'fetching-'))
  try {
    execFileSync('npm', ['pack', spec, '--pack-destination', folder, '--silent'], { cwd: folder, stdio: 'pipe' })
    const [file] = readdirSync(folder)
    if (file === undefined) throw new Error(`npm pack ${spec} wrote no file.`)
    renameSync(join(folder, file), kept)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
