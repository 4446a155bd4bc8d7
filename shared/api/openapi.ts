import { z } from 'zod'
import { defineRoute } from './route.ts'

export const openapiRoutes = {
  get: defineRoute({
    id: 'openapi.get',
    endpoint: 'GET /openapi.json',
    base: '/api',
    summary: 'Read this document',
    reply: z.record(z.string(), z.unknown()),
    cli: null,
  }),
} as const
