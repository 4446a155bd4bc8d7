import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { ownCgroup } from '../../device-manager/process/cgroup.ts'

/** Makes a control group (version 2) for a test alone, whose processes can all be killed by it; null where this user may not. */
export function makeTestGroup(): string | null {
  if (process.platform !== 'linux') return null
  const own = ownCgroup(readFileSync('/proc/self/cgroup', 'utf8'), readFileSync('/proc/self/mountinfo', 'utf8'))
  const group = join(own ?? '/nowhere', `svc-test-${crypto.randomUUID()}`)
  try {
    mkdirSync(group)
  } catch {
    return null
  }
  if (existsSync(join(group, 'cgroup.kill'))) return group
  rmdirSync(group)
  return null
}
