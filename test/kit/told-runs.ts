import type { Run } from '../../shared/api/runs.ts'
import { delay } from './programs.ts'
import type { TestApi } from './system-api.ts'

const newest = 5
const lastEvents = 30
/** A server that stands still must not hold up the end of a test. */
const tellMs = 10_000

/** The newest runs of a workspace and when their last events came: where the time went of a test that failed. */
export function tellRuns(api: TestApi): Promise<string> {
  const late = delay(tellMs).then(() => 'The server does not tell its runs.')
  return Promise.race([told(api), late])
}

async function told(api: TestApi): Promise<string> {
  const { data } = await api.call<{ data: Run[] }>('GET', `/runs?limit=${newest}`)
  const runs = data.map(async ({ id, status, harness }) => {
    const events = (await api.events(id)).slice(-lastEvents)
    const lines = events.map(({ createdAt, kind, data: body }) => {
      return `  ${createdAt} ${kind} ${(JSON.stringify(body) ?? '').slice(0, 200)}`
    })
    return [`${id} ${harness?.id} ${status}`, ...lines].join('\n')
  })
  return (await Promise.all(runs)).join('\n')
}
