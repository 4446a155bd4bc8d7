import type Koa from 'koa'
import { downloads, type DownloadDependencies } from './downloads.ts'
import { skillBundles } from './skill-bundles.ts'

/** What answers with bytes, and not with JSON. */
export const allDownloads = (deps: DownloadDependencies): Koa.Middleware[] => [downloads(deps), skillBundles(deps)]
