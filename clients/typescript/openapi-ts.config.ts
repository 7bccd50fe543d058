import { defineConfig } from "@hey-api/openapi-ts";

export default defineConfig({
  input: process.env.TALLYBOOK_OPENAPI ?? "http://localhost:8080/openapi.json",
  output: { path: "src/generated", importFileExtension: ".js" },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
});
