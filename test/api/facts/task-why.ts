import { aTask, missing } from './kit/tasks.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

export const taskWhyFacts: ResourceFacts = {
  requests: { 'tasks.why': aTask },
  codes: [missing('tasks.why', '/why')],
}
