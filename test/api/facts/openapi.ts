import { plain } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'

export const openapiFacts: ResourceFacts = {
  requests: { 'openapi.get': plain },
  withoutCommand: { 'openapi.get': 'the OpenAPI document is for programs' },
}
