import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { linkPackages } from './checkout.ts'

/** In place of `npm ci`, started in the checkout's folder. */
rmSync(join(process.cwd(), 'node_modules'), { recursive: true })
while (!existsSync(join(process.env['SVC_TEST_NPM']!, 'install'))) await sleep(20)
linkPackages(process.cwd())
