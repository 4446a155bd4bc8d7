import { z } from 'zod'
import { defineRoute } from './route.ts'

export const openapiRoutes = {
  get: defineRoute({
    id: 'openapi.get',
    method: 'GET',
    base: '/api',
    path: '/openapi.json',
    summary: 'Read this document',
    reply: z.record(z.string(), z.unknown()),
    cli: null,
  }),
} as const
