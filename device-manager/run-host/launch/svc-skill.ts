import { createHash } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundleHashText } from '../../../shared/lib/bundle-hash.ts'
import { byteLength } from '../../../shared/lib/byte-length.ts'
import { svcSkill } from '../../../shared/runs/svc-skill.ts'
import type { GivenSkill } from '../../harness/parts/skills.ts'
import type { SkillsRead } from './skills.ts'
import { isDiskFull } from '../../process/system-trouble.ts'
import { removed, versionChars } from './workspace-skills.ts'

/**
 * Adds the skill `svc` of this release to the skills of a run. It takes no room among them, and is no part of their digest: a session would
 * otherwise begin anew with each release. A skill of a folder of the agent keeps its name.
 */
export function addSvcSkill(read: SkillsRead, folderOfCopies: string): SkillsRead {
  const { slug: name, description, body, file } = svcSkill
  if (read.given.some((skill) => skill.name === name)) return read
  const folder = join(folderOfCopies, name)
  const { skills, leftOut } = read.told.workspace ?? { skills: [], leftOut: [] }
  const told = (workspace: typeof read.told.workspace) => ({ ...read.told, workspace })
  try {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(join(folder, 'SKILL.md'), file, { mode: 0o600 })
  } catch (error) {
    // No later run is to find half of it.
    removed(folder)
    const reason = isDiskFull(error) ? 'disk_full' : 'not_materialized'
    return { ...read, told: told({ skills, leftOut: [...leftOut, { slug: name, reason }] }) }
  }
  const given: GivenSkill = { name, description, body, folder, hasFiles: false, isBuiltin: true }
  return { ...read, given: [...read.given, given], told: told({ skills: [...skills, { name, version }], leftOut }) }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const listed = {
  path: 'SKILL.md',
  sizeBytes: byteLength(svcSkill.file),
  sha256: sha256(svcSkill.file),
  executable: false,
}
const version = sha256(bundleHashText([listed])).slice(0, versionChars)
