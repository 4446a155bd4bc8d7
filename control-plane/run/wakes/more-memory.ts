import type { RunEffect } from '../effects.ts'
import { findDetails } from '../../resources/runs/details-store.ts'
import { placeOfEnvironment } from '../places/places.ts'
import { changeRun } from '../change-store.ts'
import { nextSize } from '../../resources/sandboxes/sizes.ts'
import { findSandboxOfRun, replaceSandbox } from '../../resources/sandboxes/store.ts'
import { findWorkspace } from '../../resources/workspaces/store.ts'
import { requestSuccessor } from './successors.ts'

/** The exit reasons of a run whose sandbox had no memory left and that is followed. A run that somebody cancelled is followed by none. */
const endsOf = ['error', 'sandbox_lost']

/**
 * An effect of a run's end: where the workspace wants that, one whose sandbox had no memory left is followed by one that goes on with its
 * volume and its session, in a sandbox of the next size up. The volume is kept for that one. Sizes end, and so do those that follow.
 */
export const followMemoryLoss: RunEffect = async (db, run, { world, exitReason, outOfMemory = false }) => {
  if (!placeOfEnvironment(run.environmentType).canGrow || run.compacts || !endsOf.includes(exitReason ?? '')) return
  const sandbox = await findSandboxOfRun(db, run.id)
  if (sandbox === null || sandbox.removedAt !== null || !(outOfMemory || sandbox.outOfMemory === true)) return
  const size = nextSize(sandbox.size)
  if (size === null || (await findWorkspace(db, run.workspaceId))?.oomResume !== true) return
  if (!(await replaceSandbox(db, sandbox, { leavesVolume: true }))) return
  const sentence = `A run in a sandbox of the size ${size} goes on with it.`
  await changeRun(db, run.id, { type: 'message_added', sentence })
  const details = await findDetails(db, run.id)
  await requestSuccessor(db, run, { stop: 'memory', prompt: details?.prompt ?? null, world })
}
