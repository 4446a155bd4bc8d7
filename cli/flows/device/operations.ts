import type { Flow } from '../../context/context.ts'
import { askDaemon } from '../../device/daemon-control.ts'
import { usageError } from '../../errors/cli-error.ts'
import { devicePlaces } from '../../machine/paths.ts'

// Commands that make one request to the daemon.

export const deviceRefresh: Flow = async ({ env, out }) => {
  const looked = await askDaemon(await devicePlaces(env), { op: 'refresh' })
  if (out.format === 'json') {
    await out.result(looked)
    return
  }
  const harnesses = Object.entries(looked.readiness.harnesses).map(([harness, facts]) => ({ harness, ...facts }))
  await out.result({ data: harnesses }, { look: 'device refresh harnesses', list: 'data' })
  out.text('')
  await out.result({ data: looked.folders }, { look: 'device refresh folders', list: 'data' })
}

export const deviceSyncConfig: Flow = async ({ env, out }) => {
  await out.result(await askDaemon(await devicePlaces(env), { op: 'sync_config' }), { look: 'device sync-config' })
}

export const deviceSpool: Flow = async ({ env, out, values }) => {
  const places = await devicePlaces(env)
  const runId = values.local['run']
  if (values.local['replay'] === true) {
    const replayed = await askDaemon(places, { op: 'spool_replay', ...(typeof runId === 'string' ? { runId } : {}) })
    await out.result(replayed, { look: 'device spool replay' })
    return
  }
  if (runId !== undefined) throw usageError('--run goes with --replay.')
  await out.result(await askDaemon(places, { op: 'spool' }), { look: 'device spool', list: 'runs' })
}

export const deviceTestError: Flow = async ({ env, out, values }) => {
  const places = await devicePlaces(env)
  const message = values.local['message']
  const reported = await askDaemon(places, { op: 'test_error', ...(typeof message === 'string' ? { message } : {}) })
  await out.result(reported, { look: 'device test-error' })
  out.message(`svc: the error was logged as ${reported.errorId}; find it in ${reported.logPath} (\`svc device logs\`).`)
}
