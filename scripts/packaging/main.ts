import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { valid } from 'semver'
import { version } from '../../shared/lib/version.ts'
import { platforms } from '../../shared/releases/manifest.ts'
import { makeRelease, packageKinds } from './release.ts'

const usage = `usage: npm run release -- [options]
  --out DIR             the folder, which is made anew (default: dist/release)
  --release VERSION     the version (default: that of package.json)
  --platform PLATFORM   build for these alone: ${platforms.join(', ')}; repeatable
  --kind KIND           build these alone: ${packageKinds.join(', ')}; repeatable
  --node PLATFORM=FILE  another Node for a platform: a tar.gz of nodejs.org
  --sign KEY            sign with this private key (PEM, Ed25519), whose public key the copies then ask of later releases
  --from URL            the address at which the files will lie, for the formula of Homebrew
`

class UsageError extends Error {}

/** `npm run release`: builds the packages of a release. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: join(import.meta.dirname, '../../dist/release') },
      release: { type: 'string', default: version },
      platform: { type: 'string', multiple: true, default: [...platforms] },
      kind: { type: 'string', multiple: true, default: [...packageKinds] },
      node: { type: 'string', multiple: true, default: [] },
      sign: { type: 'string' },
      from: { type: 'string', default: 'http://localhost/svc' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return void process.stdout.write(usage)
  if (valid(values.release) !== values.release) throw new UsageError(`${values.release} is no version.`)
  await makeRelease({
    out: resolve(values.out),
    version: values.release,
    platforms: values.platform.map((name) => oneOf(platforms, name)),
    kinds: values.kind.map((name) => oneOf(packageKinds, name)),
    nodes: new Map(values.node.map((text) => text.split(/=(.*)/s) as [string, string])),
    key: values.sign === undefined ? null : signingKey(values.sign),
    from: values.from,
    level: 9,
    say: (line) => process.stdout.write(`${line}\n`),
  })
}

function oneOf<Name extends string>(names: readonly Name[], given: string): Name {
  const found = names.find((name) => name === given)
  if (found === undefined) throw new UsageError(`${given} is none of ${names.join(', ')}.`)
  return found
}

function signingKey(path: string): KeyObject {
  const key = createPrivateKey(readFileSync(path))
  if (key.asymmetricKeyType !== 'ed25519') throw new UsageError(`${path} is no key of Ed25519.`)
  return key
}

try {
  await main()
} catch (error) {
  const isUsage = error instanceof UsageError || String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS')
  if (!isUsage) throw error
  process.stderr.write(`${(error as Error).message}\n\n${usage}`)
  process.exitCode = 2
}
