import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Source } from './contents.ts'

const root = join(import.meta.dirname, '../..')

/** What a release is made of, as a CycloneDX document: npm's list of the packages of the lockfile, without what differs from call to call. */
export function sbomOf({ version, at }: Source): { name: string; bytes: Buffer } {
  const flags = ['--package-lock-only', '--omit', 'dev', '--sbom-format', 'cyclonedx', '--sbom-type', 'application']
  const printed = execFileSync('npm', ['sbom', ...flags], { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 ** 2 })
  const { serialNumber: _, metadata, ...rest } = JSON.parse(printed) as Bom
  const { tools: __, component, ...kept } = metadata
  const named = { ...component, name: 'svc', version, 'bom-ref': `svc@${version}`, purl: `pkg:npm/svc@${version}` }
  const bom = { ...rest, metadata: { ...kept, timestamp: at.toISOString(), component: named } }
  return { name: `svc-${version}.cdx.json`, bytes: Buffer.from(`${JSON.stringify(bom, null, 2)}\n`) }
}

interface Bom {
  serialNumber?: string
  metadata: { tools?: unknown; component: Record<string, unknown> } & Record<string, unknown>
}
