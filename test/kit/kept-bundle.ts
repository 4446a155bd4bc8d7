import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { bundleHashText } from '../../shared/lib/bundle-hash.ts'

/** Puts a bundle where the daemon keeps them. What ends in `.sh` is a program. Returns its hash, and how many files it has. */
export function keepBundleIn(bundles: string, contents: Readonly<Record<string, string>>) {
  const paths = Object.keys(contents).toSorted()
  const files = paths.map((path) => ({
    path,
    sizeBytes: Buffer.byteLength(contents[path]!),
    sha256: createHash('sha256').update(contents[path]!).digest('hex'),
    executable: path.endsWith('.sh'),
  }))
  const bundleHash = createHash('sha256').update(bundleHashText(files)).digest('hex')
  for (const [path, content] of Object.entries(contents)) {
    const file = join(bundles, bundleHash, 'files', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
  writeFileSync(join(bundles, bundleHash, 'list.json'), JSON.stringify({ files }))
  return { bundleHash, fileCount: files.length }
}
