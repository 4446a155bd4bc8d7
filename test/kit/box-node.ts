import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Box } from './box.ts'

// What boxes have of Node and npm, which they cannot fetch.

const root = join(import.meta.dirname, '../..')
const npm = (...words: string[]) => execFileSync('npm', words, { encoding: 'utf8' }).trim()

/** Gives the box the Node and the npm of this machine, as its system has them. `folder`: where the archive is made. */
export function giveNode(box: Box, folder: string): void {
  const ofNpm = dirname(
    dirname(realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())),
  )
  const archive = join(folder, 'node.tar.gz')
  const from = (place: string) => ['-C', dirname(place), basename(place)]
  execFileSync('tar', ['-czf', archive, ...from(process.execPath), ...from(ofNpm)])
  const unpack = `tar -xzf ${box.give(archive)} -C /srv; mv /srv/node /usr/local/bin/`
  box.type(`set -e; ${unpack}; mkdir -p /usr/local/lib/node_modules; mv /srv/npm /usr/local/lib/node_modules/`)
  box.type('ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm')
}

/** Gives an account what npm would fetch for a checkout, which this machine fetches once for each lockfile. */
export function giveNpmCache(box: Box, account: string): void {
  const lock = readFileSync(join(root, 'package-lock.json'))
  const kept = join(root, '.cache/box', `npm-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}.tar`)
  if (!existsSync(kept)) {
    const folder = mkdtempSync(join(tmpdir(), 'svc-npm-'))
    for (const name of ['package.json', 'package-lock.json']) cpSync(join(root, name), join(folder, name))
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    npm('ci', '--prefix', folder, '--cache', join(folder, 'npm-cache'), ...options)
    mkdirSync(dirname(kept), { recursive: true })
    execFileSync('tar', ['-cf', `${kept}.part`, '-C', folder, 'npm-cache'])
    renameSync(`${kept}.part`, kept)
    rmSync(folder, { recursive: true, force: true })
  }
  const home = `/home/${account}`
  box.type(`tar -xf ${box.give(kept)} -C ${home}; chown -R ${account}: ${home}/npm-cache`)
  const settings = `cache=${home}/npm-cache\noffline=true\nregistry=${npm('config', 'get', 'registry')}\n`
  box.type(`cat >${home}/.npmrc`, settings)
}
