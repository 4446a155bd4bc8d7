import { readDelivery } from '../github/read-delivery.ts'
import { findMisfit, findSchemaFlaw } from '../resources/runs/json-schemas.ts'

/**
 * What workers do; each needs nothing else of the server. What goes in and comes out is flat: copying a text or bytes costs
 * next to nothing, while the event loop would walk through a value.
 */
export const jobs = {
  'schemas.check': findSchemaFlaw,
  'schemas.misfit': findMisfit,
  'github.delivery': readDelivery,
} as const

export type JobName = keyof typeof jobs
export type JobInput<Name extends JobName> = Parameters<(typeof jobs)[Name]>[0]
export type JobOutput<Name extends JobName> = ReturnType<(typeof jobs)[Name]>

export function work<Name extends JobName>(name: Name, input: JobInput<Name>): JobOutput<Name> {
  // Name and input belong together, which a union of functions cannot say.
  const job = jobs[name] as unknown as (input: JobInput<Name>) => JobOutput<Name>
  return job(input)
}
