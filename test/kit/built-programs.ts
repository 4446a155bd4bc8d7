import { createHash, randomUUID } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { build } from '../../scripts/build.ts'

const root = join(import.meta.dirname, '../..')
const folder = join(root, '.cache/programs')
const dayMs = 86_400_000

/**
 * The programs, bundled as they are published, in a folder named after all they are made of: what is there is up to date,
 * and no other run of the tests replaces it under this one.
 */
export async function builtPrograms(): Promise<string> {
  const built = join(folder, contentHash())
  if (existsSync(built)) return built
  mkdirSync(folder, { recursive: true })
  removeOld()
  const making = join(folder, `making-${randomUUID()}`)
  await build(making)
  try {
    renameSync(making, built)
  } catch (error) {
    if (!existsSync(built)) throw error
    // Another run was faster.
    rmSync(making, { recursive: true })
  }
  return built
}

function contentHash(): string {
  const sources = globSync('{shared,control-plane,device-manager,cli}/**/*.{ts,json}', { cwd: root })
  const hash = createHash('sha256')
  for (const file of [...sources.sort(), 'scripts/build.ts', 'package.json', 'package-lock.json']) {
    if (!file.endsWith('.test.ts'))
      hash
        .update(`${file}\0`)
        .update(readFileSync(join(root, file)))
        .update('\0')
  }
  return hash.digest('hex').slice(0, 32)
}

function removeOld(): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat && Date.now() - stat.mtimeMs > dayMs) rmSync(path, { recursive: true, force: true })
  }
}
