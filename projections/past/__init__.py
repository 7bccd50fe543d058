"""Any past moment: boards, history, explanations, comparisons."""
