export default {
  tallybook: {
    input: { target: "generated/openapi.json" },
    output: { target: "generated/orval.ts", client: "fetch", mode: "single", baseUrl: process.env.TALLYBOOK_ADDRESS },
  },
};
