import { readFileSync, writeFileSync } from 'node:fs'
import { sandboxSizeVariable } from '../../shared/device/sandbox.ts'

/**
 * The memory of a sandbox. The kernel ends a process in it for want of memory; the harness is preferred to the runner, which then says so.
 * On a device there is no such limit, and all of this does nothing.
 */

/** Of cgroups of version 2, and of version 1. */
const places = [
  { kills: '/sys/fs/cgroup/memory.events', limit: '/sys/fs/cgroup/memory.max' },
  { kills: '/sys/fs/cgroup/memory/memory.oom_control', limit: '/sys/fs/cgroup/memory/memory.limit_in_bytes' },
] as const

const gib = 1024 ** 3

export interface SandboxMemory {
  /** What ended for want of memory since the run began, as a sentence; null: nothing. */
  exhausted(): string | null
}

/** null: this is no sandbox. */
export function sandboxMemory(env: NodeJS.ProcessEnv = process.env): SandboxMemory | null {
  const size = env[sandboxSizeVariable]
  if (size === undefined) return null
  const before = killsNow()
  return {
    exhausted() {
      if (killsNow() <= before) return null
      const limit = limitNow()
      const at = limit === null ? '' : `, ${Number((limit / gib).toFixed(2))} GiB`
      return `The sandbox ran out of memory (${size}${at}): the kernel ended a process of the run.`
    },
  }
}

/** Of what a sandbox runs, the kernel ends this process first, with all that it starts from now on. Raising it needs no right. */
export function endFirst(pid: number, env: NodeJS.ProcessEnv = process.env): void {
  if (env[sandboxSizeVariable] === undefined) return
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '1000')
  } catch {
    // It has ended already.
  }
}

function killsNow(): number {
  for (const { kills } of places) {
    const found = /^oom_kill (\d+)$/m.exec(read(kills) ?? '')
    if (found !== null) return Number(found[1])
  }
  return 0
}

function limitNow(): number | null {
  for (const { limit } of places) {
    const bytes = Number(read(limit) ?? Number.NaN)
    // Version 1 writes a number beyond all memory where there is none.
    if (bytes > 0 && bytes < 2 ** 53) return bytes
  }
  return null
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return null
  }
}
