import type { ResourceFacts } from './kit/resource-facts.ts'

export const runEventFacts: ResourceFacts = {
  requests: {
    'runs.events.list': ({ live }) => ({ params: { runId: live.runId } }),
    'runs.events.get': async ({ server, live }) => {
      const { data } = await server.ok(`/runs/${live.runId}/events`)
      return { params: { runId: live.runId, eventId: data[0].id } }
    },
  },

  unknownIds: { eventId: '00000000-0000-8000-8000-000000000001' },
  // A run that works has events, and only such a run.
  things: async ({ server, person, liveRunId }) => {
    if (liveRunId === null) return {}
    const { data } = await server.ok(`/runs/${liveRunId}/events`, { token: person.token })
    return { eventId: data[0].id }
  },
  nothingToRead: { 'runs.events.get': 'a run that waits has no events' },
}
