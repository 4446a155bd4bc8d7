import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gte } from 'semver'
import { expect, test } from 'vitest'
import { platforms } from '../../shared/releases/manifest.ts'
import { nodePackages } from './tarball.ts'

// Node as the tarballs bring it. Two of the four platforms have no machine here that would start theirs.

interface Pinned {
  version: string
  integrity: string
  os: string
  cpu: string
}

const read = (path: string) => JSON.parse(readFileSync(join(import.meta.dirname, '../..', path), 'utf8')) as unknown
const { packages } = read('scripts/node24/package-lock.json') as { packages: Record<string, Pinned> }
const { engines } = read('package.json') as { engines: { node: string } }

test.each(platforms)('the Node of %s is one of that platform, new enough, and pinned by its hash', (platform) => {
  const { version, integrity, os, cpu } = packages[`node_modules/${nodePackages[platform]}`]!
  expect(`${os}-${cpu}`).toBe(platform)
  expect(integrity).toMatch(/^sha512-/)
  expect(gte(version, `${engines.node.replace('>=', '')}.0`), version).toBe(true)
})
