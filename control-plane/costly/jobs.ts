import { readDelivery } from '../github/read-delivery.ts'
import { checkProgram } from '../workflows/program/check.ts'
import { readFrontMatter } from '../resources/skills/front-matter.ts'
import { readPage } from '../resources/wiki/read-page.ts'
import { findMisfit, findSchemaFlaw } from '../resources/runs/json-schemas.ts'

/**
 * The jobs of workers; none needs anything else of the server. Inputs and outputs are flat (text, bytes), because
 * copying those is cheap, while the event loop would have to walk through a value.
 */
export const jobs = {
  'schemas.check': findSchemaFlaw,
  'schemas.misfit': findMisfit,
  'github.delivery': readDelivery,
  'workflows.check': checkProgram,
  'wiki.read': readPage,
  'skills.frontMatter': readFrontMatter,
} as const

export type JobName = keyof typeof jobs
export type JobInput<Name extends JobName> = Parameters<(typeof jobs)[Name]>[0]
export type JobOutput<Name extends JobName> = ReturnType<(typeof jobs)[Name]>

export function work<Name extends JobName>(name: Name, input: JobInput<Name>): JobOutput<Name> {
  // Name and input belong together, which the type of a union of functions cannot express.
  const job = jobs[name] as unknown as (input: JobInput<Name>) => JobOutput<Name>
  return job(input)
}
