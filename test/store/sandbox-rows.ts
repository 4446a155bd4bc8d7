import { idFrom } from '../../shared/lib/ids.ts'
import type { SandboxRow } from '../../control-plane/resources/sandboxes/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

export function sandboxRow(workspaceId: string, change: Partial<SandboxRow> = {}): SandboxRow {
  return {
    id: realWorld.id('sbx_'),
    workspaceId: idFrom(workspaceId),
    runId: realWorld.id('run_'),
    fence: 1,
    engineId: 'engine',
    device: realWorld.id('dvc_'),
    size: 'small',
    folder: null,
    image: null,
    state: 'wanted',
    volume: null,
    container: null,
    outOfMemory: null,
    leavesVolume: null,
    trouble: null,
    stateAt: at,
    removedAt: null,
    version: 1,
    createdAt: at,
    ...change,
  }
}
