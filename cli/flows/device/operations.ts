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
  await out.result({ data: harnesses }, ['harness', 'installed', 'version', 'signedIn', 'message'])
  out.text('')
  await out.result({ data: looked.folders }, ['shortId', 'rootPath', 'ok', 'message'])
}

export const deviceSyncConfig: Flow = async ({ env, out }) => {
  await out.result(await askDaemon(await devicePlaces(env), { op: 'sync_config' }))
}

export const deviceSpool: Flow = async ({ env, out, values }) => {
  const places = await devicePlaces(env)
  const runId = values.local['run']
  if (values.local['replay'] === true) {
    await out.result(await askDaemon(places, { op: 'spool_replay', ...(typeof runId === 'string' ? { runId } : {}) }))
    return
  }
  if (runId !== undefined) throw usageError('--run goes with --replay.')
  await out.result(await askDaemon(places, { op: 'spool' }), [
    'runId',
    'fence',
    'rows',
    'bytes',
    'lastSeq',
    'ackedSeq',
    'ended',
  ])
}

export const deviceTestError: Flow = async ({ env, out, values }) => {
  const places = await devicePlaces(env)
  const message = values.local['message']
  const reported = await askDaemon(places, { op: 'test_error', ...(typeof message === 'string' ? { message } : {}) })
  await out.result(reported)
  out.message(`svc: the error was logged as ${reported.errorId}; find it in ${reported.logPath} (\`svc device logs\`).`)
}
