import { aTask, missing } from './kit/tasks.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

export const taskHistoryFacts: ResourceFacts = {
  requests: { 'tasks.history': aTask, 'tasks.activity': aTask },
  codes: [missing('tasks.history', '/history'), missing('tasks.activity', '/activity')],
}
