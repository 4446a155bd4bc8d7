import type { Run } from '../../shared/api/runs.ts'
import type { TestApi } from './system-api.ts'

const newest = 5
const lastEvents = 30

/** The newest runs of a workspace and when their last events came: where the time went of a test that failed. */
export async function tellRuns(api: TestApi): Promise<string> {
  const { data } = await api.call<{ data: Run[] }>('GET', `/runs?limit=${newest}`)
  const told = data.map(async ({ id, status, harness }) => {
    const events = (await api.events(id)).slice(-lastEvents)
    const lines = events.map(({ createdAt, kind, data: body }) => {
      return `  ${createdAt} ${kind} ${(JSON.stringify(body) ?? '').slice(0, 200)}`
    })
    return [`${id} ${harness?.id} ${status}`, ...lines].join('\n')
  })
  return (await Promise.all(told)).join('\n')
}
